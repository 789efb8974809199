"""What each lab asks, and how it is found out: a module a lab, with `LAB` and `grade`."""
