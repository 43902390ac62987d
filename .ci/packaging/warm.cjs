// Runs a part of rsm as the single executable does, and saves the code that V8 compiled: `warm.cjs PART CACHE ARGUMENT…`.
const { readFileSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const { compilePart, runPart } = require('../../bin/compile-part.js')

const [part, cache, ...argv] = process.argv.slice(2)
const scripts = path.join(__dirname, '../../dist/single')
if (part === 'agent') require('../../bin/sparing.js')
const source = readFileSync(path.join(scripts, `${part}.cjs`), 'utf8')
const script = compilePart(part, source)
process.on('exit', () => {
  const data = script.createCachedData()
  if (compilePart(part, source, data).cachedDataRejected) throw new Error('V8 does not take its own code')
  writeFileSync(cache, data)
})
runPart(script, scripts).main(argv)
