// Man pages, made from the command manifest: rsm(1), and one a command, as rsm-hosts-list(1).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { date, published } from './release.js'

const { commands } = JSON.parse(readFileSync(join(root, 'oclif.manifest.json'), 'utf8'))

/** Text as roff takes it: no line begins a request, hyphens are those that people type. */
const roff = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')
const bold = (text) => `\\fB${roff(text)}\\fR`
const section = (title, lines) => (lines.length === 0 ? [] : [`.SH ${title}`, ...lines])
const paragraphs = (text = '') => text.split('\n').flatMap((line) => ['.PP', roff(line)])
const head = (name, about) => [
  `.TH ${roff(name.toUpperCase())} 1 ${date} "rsm ${published.version}" "rsm"`,
  '.SH NAME',
  `${roff(name)} \\- ${roff(about)}`,
]
const pageOf = (id) => `rsm-${id.replaceAll(':', '-')}`
const typed = (id) => `rsm ${id.replaceAll(':', ' ')}`

function option({ name, char, type, description = '', helpValue, options, default: usual }) {
  const value = type === 'boolean' ? '' : `=${helpValue ?? options?.join('|') ?? name.toUpperCase()}`
  const shown = char === undefined ? `--${name}${value}` : `-${char}, --${name}${value}`
  const otherwise = usual === undefined || type === 'boolean' ? '' : ` (default: ${usual})`
  return ['.TP', bold(shown), roff(description + otherwise)]
}

const isGlobal = ({ helpGroup }) => helpGroup === 'GLOBAL'

function commandPage({ id, summary, description, usage, args, flags, examples = [] }) {
  const words = Object.values(args)
  const places = words.map(({ name, required }) =>
    required ? name.toUpperCase() : `[${name.toUpperCase()}]`,
  )
  const synopsis = usage === undefined ? [typed(id), ...places, '[OPTIONS]'].join(' ') : `rsm ${usage}`
  return [
    ...head(pageOf(id), summary),
    ...section('SYNOPSIS', [bold(synopsis)]),
    ...section('DESCRIPTION', paragraphs(description ?? `${summary}.`)),
    ...section(
      'ARGUMENTS',
      words.flatMap(({ name, description: about = '' }) => ['.TP', bold(name.toUpperCase()), roff(about)]),
    ),
    ...section(
      'OPTIONS',
      Object.values(flags)
        .filter((flag) => !isGlobal(flag))
        .flatMap(option),
    ),
    ...section(
      'EXAMPLES',
      examples.flatMap((line) => ['.PP', '.nf', roff(line), '.fi']),
    ),
    ...section('SEE ALSO', [`${bold('rsm')}(1)`]),
  ]
}

/** Name of each page's file to its text. */
export function manPages() {
  const all = Object.values(commands).filter(({ hidden }) => hidden !== true)
  const main = [
    ...head('rsm', 'run shell scripts on many hosts and trust the result'),
    ...section('SYNOPSIS', [`${bold('rsm')} [GLOBAL OPTIONS] COMMAND [ARGUMENTS] [OPTIONS]`]),
    ...section('DESCRIPTION', [
      roff(
        'Server, agent and command line in one program. The agent of a host connects to the server, runs what it signs, and keeps the output until it is stored.',
      ),
      roff('Every command has its own page, such as rsm-exec(1), and --help.'),
    ]),
    ...section(
      'COMMANDS',
      all.flatMap(({ id, summary }) => ['.TP', bold(typed(id)), roff(summary)]),
    ),
    ...section('GLOBAL OPTIONS', [
      roff(
        'They may come before the command. Those that choose a server do not apply to commands of this machine.',
      ),
      ...Object.values(commands.whoami.flags).filter(isGlobal).flatMap(option),
    ]),
    ...section('FILES', [
      '.TP',
      bold('/etc/rsm/server.env, /etc/rsm/agent.env'),
      roff('Variables of the units rsm-server and rsm-agent.'),
      '.TP',
      bold('/var/lib/rsm/server, /var/lib/rsm/agent'),
      'What they keep.',
    ]),
  ]
  const page = (name, lines) => [`${name}.1`, `${lines.join('\n')}\n`]
  return new Map([page('rsm', main), ...all.map((command) => page(pageOf(command.id), commandPage(command)))])
}
