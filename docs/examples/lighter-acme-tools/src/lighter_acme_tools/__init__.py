"""A bookstore's tools for Lighter, an audit of what runs, and a gate."""
