/**
 * What XML 1.0 can't hold, not even escaped: most control characters, lone surrogates, U+FFFE and U+FFFF. Built from numbers so
 * that the source holds no control character.
 */
const illegal = new RegExp(
  `[${range(0, 0x08)}${range(0x0b, 0x0c)}${range(0x0e, 0x1f)}${range(0xfffe, 0xffff)}]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]`,
  'g',
)

function range(from: number, to: number): string {
  return `${String.fromCharCode(from)}-${String.fromCharCode(to)}`
}

const special: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Any text as the content of an element; what XML can't hold becomes U+FFFD. */
export function xmlText(text: string): string {
  return text.replace(illegal, '\ufffd').replace(/[&<>]/g, (character) => special[character] ?? '')
}

/** Any text as the value of an attribute in double quotes, its line ends and tabs kept. */
export function xmlAttribute(text: string): string {
  return text
    .replace(illegal, '\ufffd')
    .replace(/[&<>"]/g, (character) => special[character] ?? '')
    .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`)
}
