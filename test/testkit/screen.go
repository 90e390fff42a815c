package testkit

import (
	"io"
	"os"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// Screen is a terminal and what is shown on it.
type Screen struct {
	// Terminal is what a program writes to.
	Terminal *os.File

	screen *os.File
	shown  chan string
}

// OpenScreen opens a terminal that is so many columns wide.
func OpenScreen(t testing.TB, columns uint16) *Screen {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Cols: columns, Rows: 24}))
	s := &Screen{Terminal: terminal, screen: screen, shown: make(chan string)}
	go func() {
		text, _ := io.ReadAll(screen) // a terminal that is closed ends it with an error
		s.shown <- string(text)
	}()
	return s
}

// Close ends the terminal and returns everything that was shown on it.
func (s *Screen) Close(t testing.TB) string {
	t.Helper()
	require.NoError(t, s.Terminal.Close())
	shown := <-s.shown
	require.NoError(t, s.screen.Close())
	return shown
}
