"""The event clock in compiled code: its arrays (memory), what becomes of messages (fates), and the clock itself."""
