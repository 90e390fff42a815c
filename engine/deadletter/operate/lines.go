package operate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// MaxLine bounds one line of an import: a record of the largest size a broker takes, twice (it may be edited), in
// base64.
const MaxLine = 8 << 20

// ErrLineTooLong says that a line is longer than [MaxLine].
var ErrLineTooLong = errors.New("the line is too long")

// Lines reads line by line, without the line ends and the blanks around. One that is too long comes as
// [ErrLineTooLong], and the next one after it; any other error is the last thing that comes.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, MaxLine+1)
		for more := true; more; {
			line, err := in.ReadSlice('\n')
			tooLong := len(line) > MaxLine
			for errors.Is(err, bufio.ErrBufferFull) { // the rest of it is not held
				_, err = in.ReadSlice('\n')
			}
			ended := errors.Is(err, io.EOF)
			switch {
			case err != nil && !ended:
				yield(nil, err)
				return
			case tooLong:
				more = yield(nil, ErrLineTooLong)
			case len(line) > 0:
				more = yield(bytes.TrimSpace(line), nil)
			}
			more = more && !ended
		}
	}
}
