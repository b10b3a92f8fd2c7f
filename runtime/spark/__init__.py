"""Spark itself: sessions, code for its workers, its log, and its errors in words."""
