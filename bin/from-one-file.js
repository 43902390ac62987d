// Loads rsm out of the single executable of which this is a part, in place of from-files.js: one script for each part of rsm,
// with what V8 made of it when it was packaged, which more than halves a start. Where nothing came along (another machine's
// executable, --no-code-cache), the first command of a user keeps it for the next.
const {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} = require('node:fs')
const path = require('node:path')
const { getAsset, getRawAsset } = require('node:sea')
const { compilePart, runPart } = require('./compile-part.js')
const { isOwn } = require('./trusted-directory.js')

/** A file that comes with rsm, as text. */
exports.readOwn = (path) => getAsset(path, 'utf8')

/** The source map of a part that a stack names: few starts need one. */
exports.readMap = (file) => {
  const { gunzipSync } = require('node:zlib')
  return gunzipSync(getRawAsset(`${file}.map.gz`)).toString('utf8')
}

let directory
/** Keeps what V8 has compiled in this directory, or reads it there. */
exports.keepCompiled = (where) => {
  directory = where
}

function shipped(part) {
  try {
    return Buffer.from(getRawAsset(`${part}.cache`))
  } catch {
    return undefined
  }
}

/** `name` holds the source's hash: V8 compares lengths only, so the file has to be this user's own. */
function kept(name) {
  try {
    const fd = openSync(path.join(directory, name), 'r')
    try {
      return isOwn(fstatSync(fd)) ? readFileSync(fd) : undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}

/** Whole or not at all, and in place of what another release kept. A command does not fail because nothing can be kept. */
function keep(part, name, script) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const draft = path.join(directory, `.${name}.${process.pid}`)
    writeFileSync(draft, script.createCachedData(), { mode: 0o600 })
    renameSync(draft, path.join(directory, name))
    for (const other of readdirSync(directory))
      if (other.startsWith(`${part}-`) && other !== name) rmSync(path.join(directory, other))
  } catch {
    // Then the next one starts as slowly.
  }
}

/** What a part exports: a single script has all of it, whatever the file is called. */
exports.load = (part) => {
  const source = getAsset(`${part}.cjs`, 'utf8')
  const found = shipped(part)
  if (found !== undefined || directory === undefined) return runPart(compilePart(part, source, found), '/')
  const name = `${part}-${getAsset(`${part}.id`, 'utf8')}`
  const script = compilePart(part, source, kept(name))
  if (script.cachedDataRejected !== false) process.once('exit', () => keep(part, name, script))
  return runPart(script, '/')
}
