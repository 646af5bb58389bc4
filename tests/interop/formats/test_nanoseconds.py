from fractions import Fraction

from optpart.interop.formats.nanoseconds import MILLISECOND, SECOND, Times


def test_times_become_whole_nanoseconds_and_those_rounded_are_counted() -> None:
    times = Times(SECOND)
    assert times.read("1.5", "x") == 1_500_000_000
    assert times.remarks() == ()
    assert times.read(0.0006000000000000001, "x") == 600_000
    assert times.remarks() == ("One time was rounded to whole nanoseconds.",)
    assert times.whole([Fraction(1, 3), Fraction(1, 3)]) == 666_666_667
    assert times.remarks() == ("2 times were rounded to whole nanoseconds.",)
    assert Times(MILLISECOND).read("2.211", "x") == 2_211_000
