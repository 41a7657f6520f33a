/** The tools of the example agent: pure functions, no network, the same answer every time. */
import { tool } from "@langchain/core/tools";
import { z } from "zod";

const SKIES = ["sunny", "cloudy", "rainy", "windy", "foggy", "snowy"];

export const getWeather = tool(
  ({ place }) => {
    const hash = [...place.toLowerCase()].reduce(
      (sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9973,
      7,
    );
    return `It is ${SKIES[hash % SKIES.length]} in ${place}, ${(hash % 35) - 5} °C.`;
  },
  {
    name: "get_weather",
    description: "The weather in a place.",
    schema: z.object({ place: z.string().describe("City or region, e.g. Paris") }),
  },
);

export const calculate = tool(({ expression }) => `${expression} = ${evaluate(expression)}`, {
  name: "calculate",
  description: "Works out an arithmetic expression.",
  schema: z.object({ expression: z.string().describe("Numbers, + - * / and parentheses, e.g. (2 + 3) * 4") }),
});

/** A recursive descent parser: `eval` on text that a model wrote would run whatever the model wrote. */
function evaluate(expression: string): number {
  const tokens = expression.match(/\d+(?:\.\d+)?|\S/g) ?? [];
  const take = (...wanted: string[]) => (wanted.includes(tokens[0] ?? "") ? tokens.shift() : undefined);

  const factor = (): number => {
    if (take("-")) return -factor();
    if (take("(")) {
      const inner = total();
      if (!take(")")) throw new Error(`A parenthesis is not closed in "${expression}".`);
      return inner;
    }
    const number = Number(tokens.shift() ?? Number.NaN);
    if (Number.isNaN(number)) throw new Error(`"${expression}" is not an arithmetic expression.`);
    return number;
  };
  const product = (): number => {
    let value = factor();
    for (let sign = take("*", "/"); sign; sign = take("*", "/")) {
      value = sign === "*" ? value * factor() : value / factor();
    }
    return value;
  };
  const total = (): number => {
    let value = product();
    for (let sign = take("+", "-"); sign; sign = take("+", "-")) {
      value = sign === "+" ? value + product() : value - product();
    }
    return value;
  };

  const result = total();
  if (tokens.length > 0) throw new Error(`"${expression}" is not an arithmetic expression.`);
  if (!Number.isFinite(result)) throw new Error(`"${expression}" divides by zero.`);
  return result;
}
