// Compiles a part of rsm that is one script, for the single executable and for its code cache: both must compile in the same
// way.
const { Script } = require('node:vm')

const wrapped = (source) => `(function (exports, require, module, __filename, __dirname) {${source}\n})`

/** The script of a part; `cachedData` is V8's code cache of the same source, if there is one. */
exports.compilePart = (part, source, cachedData) =>
  new Script(wrapped(source), { filename: `${part}.cjs`, cachedData })

/** Its exports; `home` is the path that it sees as its own. */
exports.runPart = (script, home) => {
  const made = { exports: {} }
  script.runInThisContext()(made.exports, require, made, `${home}/part.cjs`, home)
  return made.exports
}
