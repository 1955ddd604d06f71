"""Compiled programs of copies between layouts, and the keywords that control them."""
