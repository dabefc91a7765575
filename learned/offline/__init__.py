"""Plans of whole problems by a graph network: it chooses among rules, or corrects the order of a classic one."""
