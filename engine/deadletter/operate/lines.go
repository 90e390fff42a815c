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
		lines := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := readLine(lines)
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return
			}
			last := err != nil && !errors.Is(err, ErrLineTooLong) && !errors.Is(err, io.EOF)
			if errors.Is(err, io.EOF) {
				err = nil // the last line has no end
			}
			if !yield(bytes.TrimSpace(line), err) || last {
				return
			}
		}
	}
}

// readLine holds no more of a line than may be held.
func readLine(lines *bufio.Reader) (line []byte, err error) {
	tooLong := false
	for {
		part, err := lines.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, ErrLineTooLong
		}
		return line, err
	}
}
