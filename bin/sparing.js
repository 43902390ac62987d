// What goes through an agent's terminals lives for milliseconds, and waits in memory for the next collection: that has to come
// soon, so the space for it stays as small as it is at the start. (V8 reads its largest size before any script runs. A server's
// collections go through all of its memory, so many small ones would take a third of its time with 100,000 hosts.) And an agent
// runs on every host for years and does little: 2 MB less there is worth a slower compiler. Set before anything is compiled, as V8
// takes compiled code only with the flags that it was made with.
const { setFlagsFromString } = require('node:v8')

setFlagsFromString('--semi-space-growth-factor=1')
setFlagsFromString('--optimize-for-size')
