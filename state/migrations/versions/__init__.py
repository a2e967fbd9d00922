"""The steps, oldest first. What was released is never edited."""
