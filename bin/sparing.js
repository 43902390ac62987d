// What passes through a server or an agent lives for milliseconds, and waits in memory for the next collection: that has to come
// soon, so the space for it stays as small as it is at the start. (V8 reads its largest size before any script runs.) Set before
// anything is compiled, as V8 takes compiled code only with the flags that it was made with.
const { setFlagsFromString } = require('node:v8')

/** Sets what V8 may take of memory in this part of rsm. */
exports.spare = (part) => {
  if (part !== 'cli') setFlagsFromString('--semi-space-growth-factor=1')
  // An agent runs on every host for years and does little: 2 MB less there is worth a slower compiler.
  if (part === 'agent') setFlagsFromString('--optimize-for-size')
}
