// Loads rsm from the single executable that contains this file, in place of from-files.js: one script for each part of rsm, with
// the code cache that V8 made when it was packaged, which more than halves a start. Without one (an executable for another
// machine, --no-code-cache) the first command of a user saves it for the next.
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

/** The source map of a part in a stack trace; few processes need one. */
exports.readMap = (file) => {
  const { gunzipSync } = require('node:zlib')
  return gunzipSync(getRawAsset(`${file}.map.gz`)).toString('utf8')
}

let directory
/** Uses this directory as V8's code cache. */
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

/** `name` contains the hash of the source: V8 compares lengths only, so the file must be this user's own. */
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

/** Replaces the cache of another release atomically. A command must not fail because it cannot write the cache. */
function keep(part, name, script) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const draft = path.join(directory, `.${name}.${process.pid}`)
    writeFileSync(draft, script.createCachedData(), { mode: 0o600 })
    renameSync(draft, path.join(directory, name))
    for (const other of readdirSync(directory))
      if (other.startsWith(`${part}-`) && other !== name) rmSync(path.join(directory, other))
  } catch {
    // The next command starts as slowly.
  }
}

/** Exports of a part: a single script has all of them, so the file name is ignored. */
exports.load = (part) => {
  const source = getAsset(`${part}.cjs`, 'utf8')
  const found = shipped(part)
  if (found !== undefined || directory === undefined) return runPart(compilePart(part, source, found), '/')
  const name = `${part}-${getAsset(`${part}.id`, 'utf8')}`
  const script = compilePart(part, source, kept(name))
  if (script.cachedDataRejected !== false) process.once('exit', () => keep(part, name, script))
  return runPart(script, '/')
}
