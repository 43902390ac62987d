// Version and commit of this checkout.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'

const git = (...words) => {
  const { status, stdout } = spawnSync('git', ['-C', root, ...words], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}

/** null outside of a git checkout; ends with -dirty where something is not committed. */
const commit = git('rev-parse', 'HEAD')
export const gitHead = commit === '' ? null : commit + (git('status', '--porcelain') === '' ? '' : '-dirty')

/** Seconds: when the commit was made, so that the same commit makes the same packages. */
export const epoch = Number(git('log', '-1', '--format=%ct') || 0)
export const date = new Date(epoch * 1000).toISOString().slice(0, 10)

const { name, version, description, license, type, engines, os, bin, oclif } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
)
/**
 * The public half of the key that signs executables: base64 of the 32 bytes of Ed25519. A build without it
 * refuses upgrades.
 */
export const releaseKey = process.env['RSM_RELEASE_PUBLIC_KEY'] || null
if (releaseKey !== null && !/^[A-Za-z0-9+/]{43}=$/.test(releaseKey))
  throw new Error('RSM_RELEASE_PUBLIC_KEY: not the 32 bytes of an Ed25519 key in base64')

/** package.json of what is installed: everything is bundled, so that it needs no package. */
export const published = {
  name,
  version,
  description,
  license,
  type,
  engines,
  os,
  bin,
  ...(gitHead === null ? {} : { gitHead }),
  ...(releaseKey === null ? {} : { releaseKey }),
  oclif,
}
