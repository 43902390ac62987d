/** What XML 1.0 can't hold, not even escaped: most control characters, lone surrogates, U+FFFE and U+FFFF. */
const illegal = new RegExp(
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\ufffe\\uffff]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]',
  'g',
)

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
