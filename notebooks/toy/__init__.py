"""Two waiters and a monkey: the smallest program that chapter 3 can patch."""
