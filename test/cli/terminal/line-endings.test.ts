import test from 'ava'
import fc from 'fast-check'
import { LineEndings } from '../../../src/cli/terminal/display.ts'

const text = fc.string({ unit: fc.constantFrom('\r', '\n', 'a', '😀'), maxLength: 30 })

test("the terminal's conversion of line feeds is undone exactly, wherever chunks are cut", (t) => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(40)), (written, cuts) => {
      const shown = written.replaceAll('\n', '\r\n')
      const endings = new LineEndings()
      const places = [...cuts.sort((one, other) => one - other), shown.length]
      let from = 0
      let out = ''
      for (const place of places) {
        out += endings.write(shown.slice(from, place))
        from = Math.max(from, place)
      }
      t.is(out + endings.end(), written)
    }),
  )
})
