"""Views: figures, pages and terminal tables; the only room that draws."""
