package token

import (
	"cmp"
	"fmt"
	"sync"

	"rdzv/internal/hint"
)

const (
	inPodTemplate = "in the pod template: {name: RDZV_TOKEN, valueFrom: {fieldRef: {fieldPath: " +
		`"metadata.labels['%s']"}}}`
	fromSecret = "kubectl create secret generic rdzv --from-literal=token=$(rdzv token)\n" +
		"in the pod template: {name: RDZV_TOKEN, valueFrom: {secretKeyRef: {name: rdzv, key: token}}}"
)

// advice is how all nodes of each platform get the same RDZV_TOKEN. Where it is the UID of an
// object, the pods have that as a label.
//
// Sources: kubernetes.io/docs/reference/labels-annotations-taints (controller-uid, since 1.27);
// sigs.k8s.io/jobset v0.10.1, pkg/controllers/jobset_controller.go, labelAndAnnotateObject: the UID
// is a label and an annotation of Jobs and pods, also of a TrainJob's; docs.skypilot.co,
// running-jobs/environment-variables; dstack.ai/docs/concepts/secrets; docs.runpod.io,
// pods/templates/secrets; Beaker's experiment specifications (envVars, secret).
//
// It is made when it is needed, because each start of an agent would make the map.
var advice = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"Indexed Job":       fmt.Sprintf(inPodTemplate, "batch.kubernetes.io/controller-uid"),
		"JobSet":            fmt.Sprintf(inPodTemplate, "jobset.sigs.k8s.io/jobset-uid"),
		"Kubeflow TrainJob": fmt.Sprintf(inPodTemplate, "jobset.sigs.k8s.io/jobset-uid"),
		"PyTorchJob":        fromSecret,
		"LeaderWorkerSet":   fromSecret,
		"Volcano job":       fromSecret,
		"SkyPilot task": "in the task: secrets: {RDZV_TOKEN: null}\n" +
			"export RDZV_TOKEN=$(rdzv token); sky launch --secret RDZV_TOKEN ...",
		"dstack task": "dstack secret set rdzv_token $(rdzv token)\n" +
			"in the configuration: env: [\"RDZV_TOKEN=${{ secrets.rdzv_token }}\"]",
		"Beaker task": "beaker secret write RDZV_TOKEN $(rdzv token)\n" +
			"in the specification: envVars: [{name: RDZV_TOKEN, secret: RDZV_TOKEN}]",
		"RunPod cluster": "a secret rdzv_token with the output of rdzv token, and in the template the " +
			"variable RDZV_TOKEN={{ RUNPOD_SECRET_rdzv_token }}",
	}
})

// missingOnPlatform is the error of an agent that has no token: one that it creates would be that
// of its node alone.
func (o Owner) missingOnPlatform(missing error) error {
	how := cmp.Or(advice()[o.Platform], "set RDZV_TOKEN to the output of rdzv token, on all nodes")
	return hint.With(
		fmt.Errorf("%w: all %d nodes of the %s need the same token", missing, o.Agents, o.Platform), how,
	)
}
