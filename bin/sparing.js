// An agent runs on every host for years and does little: 2 MB less there is worth a slower compiler. What goes through its
// terminals lives for milliseconds, and waits in memory for the next collection: that has to come soon. Before anything is
// compiled, as V8 takes compiled code only with the flags that it was made with.
const { setFlagsFromString } = require('node:v8')

setFlagsFromString('--optimize-for-size')
setFlagsFromString('--max-semi-space-size=1')
