"""What is measured of treadle's own parts; each module is run as a child, with the name of a row."""

MEASURES = {
    "runner": (
        "float32",
        "bf16",
        "int8",
        "float32, planned ahead",
        "bf16, planned ahead",
        "int8, planned ahead",
    ),
    "products": ("float32", "bf16", "int8"),
    "accuracy": ("all",),
}
"""Part -> its rows."""
