//go:build without_kubelet

package decide

// The kubelet is part of k8s.io/kubernetes, which is not published for every version.
var imageKinds []Kind
