"""Slot Attention (Locatello et al. 2020), the method that Tagger is compared with today."""

from paper.slot_attention.model import SlotAutoencoder
from paper.slot_attention.run import SlotAttentionRun, data_of, of_length, quick_slots, run_slot_attention

__all__ = ["SlotAttentionRun", "SlotAutoencoder", "data_of", "of_length", "quick_slots", "run_slot_attention"]
