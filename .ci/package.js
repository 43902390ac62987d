#!/usr/bin/env node
// Makes the packages, as `usage` describes. Needs `npm run build`. `--no-code-cache` makes the same bytes every time;
// executables then start in twice the time until a user's first command has kept the code.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parts, root } from './bundling/bundling.js'
import { makeCodeCache } from './packaging/code-cache.js'
import { makeDeb } from './packaging/deb.js'
import { nodeFor, postject } from './packaging/fetched.js'
import { packNpm } from './packaging/npm.js'
import { bundleParts, scripts } from './packaging/parts.js'
import { published } from './packaging/release.js'
import { makeRpm } from './packaging/rpm.js'
import { readSigningKey, signExecutable } from './packaging/sign.js'
import { makeSingle } from './packaging/single.js'
import { signSums, writeSbom, writeSums } from './packaging/sums.js'
import { layOut } from './packaging/tree.js'

const kinds = ['executable', 'deb', 'rpm', 'npm', 'sbom']
const usage = `Usage: npm run package -- [NAME…] [--machine x64|arm64] [--out DIR]

Makes the packages NAME (${kinds.join(', ')}; default: all) and prints their paths.
A package whose tools are missing is left out, with a line on stderr.

  --machine ARCH   for one architecture only
  --out DIR        directory to write to (default: packages)
  --fast           compress little
  --no-code-cache  make the same bytes each time; the first start takes longer
`
const machines = [
  { machine: 'x64', debian: 'amd64', redHat: 'x86_64' },
  { machine: 'arm64', debian: 'arm64', redHat: 'aarch64' },
]

function exitWithUsage(message) {
  process.stderr.write(`${message}\n\n${usage}`)
  process.exit(2)
}
function readArguments() {
  try {
    return parseArgs({
      options: {
        out: { type: 'string', default: 'packages' },
        'no-code-cache': { type: 'boolean' },
        machine: { type: 'string' },
        fast: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
      allowPositionals: true,
    })
  } catch (error) {
    return exitWithUsage(error.message)
  }
}
const { values, positionals } = readArguments()
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}
for (const name of positionals) if (!kinds.includes(name)) exitWithUsage(`unknown package: ${name}`)
if (values.machine !== undefined && !machines.some(({ machine }) => machine === values.machine))
  exitWithUsage(`unknown architecture: ${values.machine}`)
const preset = values.fast ? 0 : 6
const isWanted = (kind) => positionals.length === 0 || positionals.includes(kind)
const { version } = published
const out = resolve(values.out)

const isOurs = (name) => /^(rsm[-_]|SHA256SUMS)/.test(name)
const leaveOut = (name, why) => process.stderr.write(`left out: ${name}: ${why}\n`)
/** Whether a program is installed; prints what is left out if it is not. */
function has(program, name) {
  const isThere = spawnSync(program, ['--version']).error === undefined
  if (!isThere) leaveOut(name, `${program} is missing`)
  return isThere
}

/** The executables that can be made; all packages contain one of them. */
async function makeExecutables(work) {
  await bundleParts()
  for (const part of parts) rmSync(join(root, scripts, `${part}.cache`), { force: true })
  const own = nodeFor(process.arch)
  if (own === null || postject() === null) {
    leaveOut('executables, deb and rpm', 'npm cannot fetch Node and postject')
    return []
  }
  if (!values['no-code-cache']) await makeCodeCache(join(own, 'bin/node'))
  const made = []
  for (const each of machines) {
    if (values.machine !== undefined && values.machine !== each.machine) continue
    const name = `rsm-linux-${each.machine}`
    if (nodeFor(each.machine) === null) leaveOut(`${name}, its deb and rpm`, 'npm cannot fetch its Node')
    else {
      const file = join(work, name)
      await makeSingle(each.machine, file, work)
      made.push({ ...each, name, file })
    }
  }
  return made
}

function compress(file, name) {
  if (!has('xz', `${name}.xz`)) return []
  // Always two threads: their number changes the bytes.
  const { status, stderr } = spawnSync('sh', [
    '-c',
    'xz -"$0" -T2 -c "$1" >"$2"',
    String(preset),
    file,
    join(out, `${name}.xz`),
  ])
  if (status !== 0) throw new Error(`xz: ${stderr.toString()}`)
  return [`${name}.xz`]
}

async function makeAll(work) {
  const made = []
  const executables = ['executable', 'deb', 'rpm'].some(isWanted) ? await makeExecutables(work) : []
  if (isWanted('executable')) {
    for (const { name, file } of executables) {
      spawnSync('cp', [file, join(out, name)])
      made.push(name)
    }
    for (const { name, machine } of signingKey === null ? [] : executables)
      made.push(signExecutable(out, name, machine, signingKey))
    for (const { name, file } of executables) made.push(...compress(file, name))
  }
  for (const { machine, debian, file } of isWanted('deb') ? executables : []) {
    const name = `rsm_${version}_${debian}.deb`
    if (!has('dpkg-deb', name)) continue
    const tree = join(work, 'deb', machine)
    layOut(tree, machine, file, 'usr/share/zsh/vendor-completions')
    makeDeb(tree, debian, join(out, name), preset)
    made.push(name)
  }
  for (const { machine, redHat, file } of isWanted('rpm') ? executables : []) {
    const name = `rsm-${version}.${redHat}.rpm`
    if (!has('rpmbuild', name)) continue
    const tree = join(work, 'rpm', machine)
    layOut(tree, machine, file, 'usr/share/zsh/site-functions')
    makeRpm(tree, redHat, join(out, name), preset, join(work, 'rpmbuild', machine))
    made.push(name)
  }
  if (isWanted('npm')) {
    packNpm(out)
    made.push(`rsm-${version}.tgz`)
  }
  if (isWanted('sbom')) {
    const name = `rsm-${version}.cdx.json`
    writeSbom(join(out, name))
    made.push(name)
  }
  writeSums(out, made)
  const key = process.env['RSM_RELEASE_KEY']
  if (key && has('ssh-keygen', 'SHA256SUMS.sig')) signSums(out, key)
  for (const name of readdirSync(out).filter(isOurs)) process.stdout.write(`${join(values.out, name)}\n`)
}

const signingKey = readSigningKey()
mkdirSync(out, { recursive: true })
// Files of an earlier run may be of another release.
for (const name of readdirSync(out).filter(isOurs)) rmSync(join(out, name))
const work = mkdtempSync(join(existsSync('/var/tmp') ? '/var/tmp' : tmpdir(), 'rsm-package-'))
try {
  await makeAll(work)
} finally {
  rmSync(work, { recursive: true, force: true })
}
