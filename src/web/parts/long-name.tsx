import { Fragment } from 'preact'
import { sanitizeLine } from '../../cli/text/sanitize.ts'

/** Longer ones, as the node set of a whole fleet, break where they may: each place to break is an element. */
const mostCared = 4_000

/** A name that goes on in the next line behind a dot, a hyphen or the like, where there is not enough room for it. */
export function LongName({ text }: { text: string }) {
  const shown = sanitizeLine(text)
  const parts = shown.length > mostCared ? [shown] : shown.split(/(?<=[.,_:/@-])/)
  return (
    <span class="long-name">
      {parts.map((part, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </span>
  )
}
