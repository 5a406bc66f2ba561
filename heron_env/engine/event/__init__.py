"""The event clock in compiled code: what its arrays are (memory), what links draw (draws), and the clock itself."""
