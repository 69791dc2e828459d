"""How values are shown: tables, charts, pages."""
