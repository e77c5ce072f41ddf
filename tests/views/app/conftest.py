"""The app, where its packages are installed."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("swagger_ui_bundle")
