// Bundled packages, and the notices that their licences require.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './bundling.js'

/** The directory of the package that a file is of; undefined for a file of rsm. */
const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

/** Packages of these files, in order, with the names of their licences; `files` are paths within the checkout. */
export function packagesOf(files) {
  const directories = new Set(files.map((file) => packageOf(file)).filter((found) => found !== undefined))
  const packages = [...directories].map((directory) => {
    const at = join(root, directory)
    const { name, version, license, licenses } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'))
    const kind = license?.type ?? license ?? licenses?.map(({ type }) => type).join(' or ')
    return { directory, name, version, kind }
  })
  const nameOf = ({ name, version }) => `${name} ${version}`
  return packages.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
}

/** Name, version, licence and its text, package by package. */
export function noticesOf(packages) {
  const notices = packages.map(({ directory, name, version, kind }) => {
    const at = join(root, directory)
    const called = readdirSync(at).find((file) => /^(licen[cs]e|copying)/i.test(file))
    const text = called === undefined ? '' : readFileSync(join(at, called), 'utf8').trim()
    if (kind === undefined && text === '') throw new Error(`${directory} says nothing of its licence`)
    return `${name} ${version} (${kind ?? 'see below'})\n${text === '' ? '' : `\n${text}\n`}`
  })
  const line = `\n${'-'.repeat(78)}\n\n`
  return `rsm holds parts of these packages.\n${line}${[...new Set(notices)].join(line)}`
}
