"""The app: a JSON API and pages in a browser, on this machine by default. Needs the extra `unmet[app]`."""
