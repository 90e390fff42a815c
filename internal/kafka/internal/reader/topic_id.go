package reader

import (
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/kafka"
)

// topicIDLabel is what stands before the id in the metadata of a committed offset.
const topicIDLabel = "topic-id:"

// IsTopicID says whether the metadata of an offset names its topic: another program's may say anything.
func IsTopicID(metadata string) bool { return strings.HasPrefix(metadata, topicIDLabel) }

// TopicID asks the leader of the partition for the id of its topic, as it stands in the metadata of an offset. It is
// empty with brokers before 2.8. That the broker knows no such topic is an error: it may be about to.
func (r *Reader) TopicID(at kafka.TopicPartition) (string, error) {
	client, err := r.Connected()
	if err != nil {
		return "", err
	}
	leader, err := client.Leader(at.Topic, at.Partition)
	if err != nil {
		return "", fmt.Errorf("find leader: %w", err)
	}
	answer, err := leader.GetMetadata(sarama.NewMetadataRequest(client.Config().Version, []string{at.Topic}))
	if err != nil {
		_ = leader.Close()                   // it is opened again when it is needed
		_ = client.RefreshMetadata(at.Topic) // perhaps another broker leads
		return "", fmt.Errorf("ask for the topic: %w", err)
	}
	switch {
	case len(answer.Topics) != 1:
		return "", fmt.Errorf("ask for the topic: %w", sarama.ErrIncompleteResponse)
	case answer.Topics[0].Err != sarama.ErrNoError:
		return "", fmt.Errorf("ask for the topic: %w", answer.Topics[0].Err)
	case answer.Topics[0].Uuid == sarama.Uuid{}:
		return "", nil
	}
	return topicIDLabel + answer.Topics[0].Uuid.String(), nil
}
