package listener

// Shares of the descriptors that a process may open. Together they are less than two thirds, also where all parts of
// the local system are one process; the rest is for databases, brokers and files.
const (
	API    = 4  // a quarter: the listener that strangers reach
	Broker = 8  // the embedded broker's
	Small  = 16 // of operators and of the local mailbox, each
)

// Least and Most bound a share for any number of descriptors.
const (
	Least = 8
	Most  = 10_000
)

// Share is how many connections a listener should have open that gets one part in so many of the descriptors.
func Share(parts int) int {
	return max(Least, min(Descriptors()/parts, Most))
}
