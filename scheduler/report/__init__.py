"""From snapshots to text: tables, JSON, graphs, outcome. Pure: must not know the store, click or files."""
