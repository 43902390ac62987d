// V8 flags of an agent. Terminal output lives for milliseconds and waits in memory for the next collection, so the young
// generation stays at its initial size, which makes collections frequent. (V8 reads its maximum before any script runs. A
// server's collections scan all of its memory, so frequent ones would take a third of its time with 100,000 hosts.) An agent runs
// on every host for years and does little, so 2 MB less is worth a slower compiler. Set before anything is compiled, because V8
// accepts a code cache only with the flags that it was made with.
const { setFlagsFromString } = require('node:v8')

setFlagsFromString('--semi-space-growth-factor=1')
setFlagsFromString('--optimize-for-size')
