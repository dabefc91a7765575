"""What is learned from data: policies to come; so far how fast jobs run, alone and beside others."""
