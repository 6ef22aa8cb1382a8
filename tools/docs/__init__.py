"""What the pages under docs/ are made of that stands in the code already; see `tools.docs.pages`."""
