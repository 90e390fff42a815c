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
		tooLong := false // the line at work
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, MaxLine+64<<10)
		lines.Split(func(data []byte, atEnd bool) (advance int, line []byte, err error) {
			end := bytes.IndexByte(data, '\n') + 1
			whole := end > 0 || atEnd // the last line has no end
			if end == 0 && (atEnd || len(data) > MaxLine) {
				end = len(data)
			}
			tooLong = tooLong || end > MaxLine
			if end == 0 || !whole { // there is more to come; what is too long is not held
				return end, nil, nil
			}
			return end, data[:end], nil
		})
		for lines.Scan() {
			line, err := bytes.TrimSpace(lines.Bytes()), error(nil)
			if tooLong {
				line, err, tooLong = nil, ErrLineTooLong, false
			}
			if !yield(line, err) {
				return
			}
		}
		err := lines.Err()
		if err == nil && tooLong {
			err = ErrLineTooLong
		}
		if err != nil {
			yield(nil, err)
		}
	}
}
