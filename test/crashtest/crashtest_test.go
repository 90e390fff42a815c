package crashtest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/crashtest"
)

type role struct{ End string }

func init() { crashtest.Child(play) }

func play(r role) error {
	fmt.Println("began", r.End)
	switch r.End {
	case "die":
		crashtest.Die()
	case "freeze":
		thawed := make(chan struct{})
		go func() { // not on the main thread, which gets the stop first
			defer close(thawed)
			crashtest.Freeze()
		}()
		<-thawed
	case "fail":
		return errors.New("as told")
	case "input":
		_, err := io.ReadAll(os.Stdin)
		return err
	}
	return nil
}

func TestAProcessEndsAsItIsTold(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"die": crashtest.Killed, "fail": "exit status 1"} {
		p := crashtest.Start(t, role{end})
		require.EqualError(t, p.Wait(t), want)
		require.Equal(t, 1, p.Count("began "+end))
	}
	require.NoError(t, crashtest.Start(t, role{}).Wait(t))
}

func TestAProcessWaitsForItsInput(t *testing.T) {
	t.Parallel()
	p := crashtest.Start(t, role{"input"})
	p.Await(t, 1, "began")
	p.CloseInput()
	require.NoError(t, p.Wait(t))
}

func TestAFrozenProcessGoesOn(t *testing.T) {
	t.Parallel()
	p := crashtest.Start(t, role{"freeze"})
	p.Await(t, 1, crashtest.Frozen)
	p.Thaw(t)
	require.NoError(t, p.Wait(t))
}
