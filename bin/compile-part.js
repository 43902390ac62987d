// Compiles a part of rsm that is one script, for the single executable and for the cache that is made for it: both have to do
// it alike.
const { Script } = require('node:vm')

const wrapped = (source) => `(function (exports, require, module, __filename, __dirname) {${source}\n})`

/** The script of a part; `cachedData` is what V8 made of the same source, if there is any. */
exports.compilePart = (part, source, cachedData) =>
  new Script(wrapped(source), { filename: `${part}.cjs`, cachedData })

/** What it exports; `home` is where it believes to lie. */
exports.runPart = (script, home) => {
  const made = { exports: {} }
  script.runInThisContext()(made.exports, require, made, `${home}/part.cjs`, home)
  return made.exports
}
