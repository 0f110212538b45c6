"""The topics that brokers keep for themselves, as Kafka names them."""

OFFSETS_TOPIC = "__consumer_offsets"
"""Of groups: their members, and the offsets that they committed."""
STATE_TOPIC = "__transaction_state"
"""Of transactional ids."""
INTERNAL_TOPICS = (OFFSETS_TOPIC, STATE_TOPIC)
