package kafka

import "github.com/IBM/sarama"

// MaxRequestBytes bounds a request to a broker and what is asked of one; brokers take 100 MiB.
const MaxRequestBytes = 64 << 20

// maxBatchMemory bounds what one compressed batch may become in memory. Without a bound, a megabyte of zeros compressed
// well takes as many gigabytes and the process with them, again after every start. Reading a batch takes up to four
// times as much for a moment, and a consumer may read one of each partition at the same time. Producers fill batches of
// 1 MB or less before they compress them.
const maxBatchMemory = 16 << 20

// The bound is a variable of sarama's, read by its goroutines: it has to stand before the first of them starts.
func init() { sarama.MaxDecompressedBatchSize = maxBatchMemory }
