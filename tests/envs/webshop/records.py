"""Product records for the tests."""

from typing import Any

from agentic_gym.envs.webshop.products import Product, parse_products

RECORD: dict[str, Any] = {
    "name": "Lamp", "full_description": "A lamp.", "pricing": "$5.00", "images": ["a.jpg", "b.jpg"],
    "product_category": "Home \u203a Lamps", "small_description": ["Bright", ""], "customization_options": "",
    "asin": "A1", "category": "garden", "query": " Table Lamps ",
}  # fmt: skip


def products(*changes: dict[str, Any], **entry: Any) -> tuple[Product, ...]:
    """One product a change to `RECORD`, with asins A0, A1, ...; ``entry`` goes into each one's attributes."""
    records = [{**RECORD, "asin": f"A{number}", **change} for number, change in enumerate(changes)]
    attributes = {record["asin"]: {"attributes": ["bright"], **entry} for record in records}
    return parse_products(records, attributes, source="test")[0]
