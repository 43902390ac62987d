/**
 * Workflow commands of GitHub Actions: lines that a runner carries out. `::name key=value::text` counts at the start of a
 * line, whatever white space comes before; `##[name]` anywhere in one (actions/runner, ActionCommand.cs).
 */

/** The text of a command of our own. */
export function commandData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** The value of a property of a command of our own. */
export function commandProperty(text: string): string {
  return commandData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

const opening = /^[^\p{L}\p{N}_]*?::/u

/**
 * Lines of hosts, which can command nothing: a space breaks what would. Nothing that a runner takes for white space is a
 * letter, a digit or `_`, so a `::` that none of these precedes is broken, and one within a line, as in an address, is not.
 */
export function defuse(text: string): string {
  if (!text.includes('::') && !text.includes('##[')) return text
  return text
    .split('\n')
    .map((line) => line.replace(opening, (start) => `${start.slice(0, -1)} :`).replaceAll('##[', '## ['))
    .join('\n')
}
