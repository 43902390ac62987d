// Stack traces name the lines of the sources, not those of a bundle. Node's --enable-source-maps does that too, but reads every
// map when it loads the file: 70 ms of each server's start. Here a map is read when the first stack trace is formatted.
const { SourceMap } = require('node:module')
const { readMap } = require('./from-files.js')

const maps = new Map()

/** The map of a bundled file; undefined if there is none, or if an upgrade replaced the file while this process runs. */
function mapOf(file) {
  if (!maps.has(file))
    try {
      maps.set(file, new SourceMap(JSON.parse(readMap(file))))
    } catch {
      maps.set(file, undefined)
    }
  return maps.get(file)
}

function named(site) {
  const text = String(site)
  const file = site.getFileName()
  if (!file || file.startsWith('node:')) return text
  const [line, column] = [site.getLineNumber(), site.getColumnNumber()]
  const { originalSource, originalLine } = mapOf(file)?.findEntry(line - 1, column - 1) ?? {}
  // A map has no lines of packages (.ci/bundling/bundling.js).
  if (originalSource === undefined || originalSource.includes('node_modules/')) return text
  const source = originalSource.replace(/^(\.\.\/)+/, '')
  return text.replace(`${file}:${line}:${column}`, `${source}:${originalLine + 1}`)
}

/** A stack trace in Node's format. */
exports.stackOf = (error, sites) =>
  [Error.prototype.toString.call(error), ...sites.map((site) => `    at ${named(site)}`)].join('\n')
