"""What a course needs: suites of problems for homework, and their grading."""
