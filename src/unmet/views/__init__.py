"""Views: figures, pages and terminal tables; the only package that draws."""
